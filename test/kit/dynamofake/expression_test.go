package dynamofake_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// conditions are those that products of operators and operands leave out.
var conditions = []string{
	"", " ", "#n", ":n", "#n =", "= :n", "#n = :n :n", "#n == :n", "#n = :n)", "(#n = :n", "()", "#n ! :n", "#n = 42", "#n = :n AND", "AND", "#n = :n OR OR #n = :n",
	"#undefined = :n", "#n = :undefined", "#n = #n", "#x = #x", ":n = :n", ":n = :one",
	"(#n = :n)", "((#n = :n))", "((#n = :n) AND #s = :s)", "(#n = :n) AND (#s = :s)", "((#n = :n) OR (#s = :zz))", "(((#n = :n) OR #s = :zz))",
	"#n = :n OR #s = :zz AND #s = :zz", "(#n = :n OR #s = :zz) AND #s = :zz", "#n = :one AND #n = :n OR #s = :s",
	"#n BETWEEN :one AND :n", "#n BETWEEN :n AND :one", "#n between :one and :n and #s = :s", "#x BETWEEN :one AND :n", "#s BETWEEN :hel AND :zz", "#b BETWEEN :be AND :b",
	"#n BETWEEN :one AND :s", "#t BETWEEN :f AND :t", "#n BETWEEN :one", "#s BETWEEN :one AND :n", ":n BETWEEN #f AND #n", "#n BETWEEN #f AND #n", "#n BETWEEN :one AND #s",
	"attribute_exists(#n)", "attribute_exists(#x)", "attribute_not_exists(#n)", "attribute_not_exists(#x)", "attribute_exists(:n)", "attribute_exists()", "attribute_exists(#n, #s)", "attribute_exists #n",
	"attribute_exists((#n))", "ATTRIBUTE_EXISTS(#n)", "Attribute_Exists(#n)", "attribute_exists(#n) = :t", "exists(#n)", "attribute_not_exists(#PK)", "attribute_exists(#PK)",
	"begins_with(#s, :hel)", "begins_with(#s, :zz)", "begins_with(#s, :s)", "begins_with(#s, :e)", "begins_with(#e, :e)", "begins_with(#b, :be)", "begins_with(#b, :hel)", "begins_with(#n, :hel)", "begins_with(#s, :n)",
	"begins_with(#x, :hel)", "begins_with(#s, #x)", "begins_with(#s, #s)", "begins_with(:s, :hel)", "begins_with(:n, :hel)", "begins_with(#s)", "begins_with(#s, #e)", "begins_with(#ss, :hel)", "begins_with(#s, :hel) = :t", "begins_with(#s, #n)",
	"#n = :n + :one", "#n + :one = :n", "#n = -:n",
	"#f = :neg", "#f > :neg", "#big > :big", "#big <> :big", "#n < :huge", "#n > :tiny", "#n > :z0", "#z = :z", "#l = :l", "#m = :m", "#ss = :ss", "#ns = :ns", "#bs = :bs", "#t = :t", "#t <> :f",
}

func TestConditions(t *testing.T) {
	p := newPair(t)
	it := base()
	p.put(t.Context(), t, it, nil)
	all := slices.Clone(conditions)
	for _, name := range slices.Sorted(maps.Keys(it)) {
		for _, operator := range []string{"=", "<>", "<", "<=", ">", ">="} {
			for _, v := range []string{":s", ":n", ":b", ":t", ":z", ":l", ":m", ":ss", "#n", "#s", "#x"} {
				all = append(all, fmt.Sprintf("#%s %s %s", name, operator, v))
			}
		}
	}
	for _, c := range all {
		p.put(t.Context(), t, it, &c)
	}
}

// updates are applied to the base item, each on its own.
var updates = []string{
	"", " ", "SET", "SET #n", "SET #n =", "SET #n = :one,", "SET = :one", "#n = :one", "SET #n = :one SET #s = :s", "SET #n = :one set #s = :s", "SET #n = 1", "SET #n = :undefined", "SET #undefined = :n", "SET #n : :one", "FOO #n", "SET :n = :one",
	"SET #n = :one", "set #n = :one", "SET #n = :one, #s = :zz", "SET #n = :one, #n = :n", "SET #n = :one REMOVE #n", "SET #x = :s", "SET #x = #n", "SET #n = #x", "SET #x = #n, #n = #s", "SET #n = #s, #s = #n", "SET #PK = :s", "SET #SK = #SK", "REMOVE #PK", "ADD #PK :n",
	"SET #n = #n + :one", "SET #n = #n - :one", "SET #n = :one + :n", "SET #n = :one - #n", "SET #n=#n+:one", "SET #n = #n + #f", "SET #n = #n + :s", "SET #n = #n + #s", "SET #n = #x + :one", "SET #n = :one + #x", "SET #n = #n + :one + :one", "SET #n = (#n + :one)", "SET #n = ((#n + :one))", "SET #n = (#n) + (:one)",
	"SET #n = #n * :one", "SET #n = -:one", "SET #n = + :one", "SET #big = #big + :one", "SET #big = #big - :one", "SET #big = #big + :big", "SET #n = :huge + :huge", "SET #n = :huge - :huge", "SET #n = :tiny + :one", "SET #n = :tiny - :tiny", "SET #f = #f + :neg", "SET #n = :z0", "SET #n = :z0 - :one", "SET #s = #s + :one",
	"SET #n = :ss + :one", "SET #n = #ns + :one", "SET #n = #f - :neg", "SET #n = :big + #big", "SET #n = :huge", "SET #n = :tiny",
	"SET #x = attribute_exists(#s)", "SET #x = foo(#s)", "SET #x = begins_with(#s, :hel)",
	"SET #n = #n + #n", "SET #n = #n",
	"REMOVE #n", "REMOVE #n, #s", "REMOVE #x", "REMOVE #n, #n", "REMOVE", "REMOVE #n = :n", "REMOVE :n", "remove #n", "REMOVE #n #s",
	"ADD #n :one", "ADD #n :neg", "ADD #n :z0", "ADD #x :one", "ADD #x :ss", "ADD #s :one", "ADD #ss :ss1", "ADD #ss :ss", "ADD #ss :ns", "ADD #ns :ns1", "ADD #bs :bs1", "ADD #n :s", "ADD #n :t", "ADD #l :l1", "ADD #n #f", "ADD #n = :one", "ADD #n :ss", "ADD #n :one, #f :neg", "ADD #n :one, #n :n", "ADD #big :one", "ADD #n :huge", "ADD", "ADD #n", "ADD #n :undefined", "ADD #t :one",
	"SET #n = :one REMOVE #s ADD #f :neg", "ADD #f :neg SET #n = #f", "REMOVE #n SET #x = #n", "SET #n = :one REMOVE #s, #x ADD #x :one", "ADD #n :one REMOVE #s SET #x = :s ADD #f :one",
	"SET #GSI1PK = :s", "SET #GSI1PK = :e", "REMOVE #GSI1PK", "SET #GSI2PK = :s, #GSI2SK = :n", "SET #GSI2PK = :s", "SET #GSI1SK = :zz, #n = :one", "SET #GSI1PK = #GSI1PK", "SET #e = :e, #s = :e", "SET #x = :m, #q = :l, #y = :bs",
}

func TestUpdates(t *testing.T) {
	p := newPair(t)
	all := []types.ReturnValue{types.ReturnValueAllNew, types.ReturnValueAllOld, types.ReturnValueUpdatedNew, types.ReturnValueUpdatedOld, types.ReturnValueNone, ""}
	for i, u := range updates {
		p.put(t.Context(), t, base(), nil)
		p.update(t.Context(), t, &u, nil, types.ReturnValueAllNew)
		p.put(t.Context(), t, base(), nil)
		p.update(t.Context(), t, &u, nil, all[i%len(all)])
	}
}

// An update of an item that is not there creates it.
func TestUpdatesOfNothing(t *testing.T) {
	p := newPair(t)
	for _, u := range updates {
		p.delete(t.Context(), t, nil)
		p.update(t.Context(), t, &u, nil, types.ReturnValueAllNew)
		p.delete(t.Context(), t, nil)
		p.update(t.Context(), t, &u, nil, types.ReturnValueUpdatedOld)
	}
	p.delete(t.Context(), t, nil)
	p.update(t.Context(), t, nil, nil, types.ReturnValueAllNew)
	for _, c := range conditions {
		p.delete(t.Context(), t, nil)
		p.put(t.Context(), t, base(), &c)
		p.delete(t.Context(), t, &c)
	}
}
