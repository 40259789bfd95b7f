package dynamotest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// tables are the requests of a batch by table: of BatchWriteItem a list of requests,
// of BatchGetItem an object with a list of Keys.
type tables = map[string]json.RawMessage

// divisible reports whether a request is a batch of two or more.
func divisible(op string, body []byte) bool {
	if op != "BatchGetItem" && op != "BatchWriteItem" {
		return false
	}
	_, rest, err := halve(op, body)
	return err == nil && len(rest) > 0
}

// halve splits the body of a batch into the half that is passed on, and the
// unprocessed rest.
func halve(op string, body []byte) (half []byte, rest tables, err error) {
	var batch map[string]json.RawMessage
	var all tables
	if err := json.Unmarshal(body, &batch); err != nil {
		return nil, nil, fmt.Errorf("decode the batch: %w", err)
	}
	if err := json.Unmarshal(batch["RequestItems"], &all); err != nil {
		return nil, nil, fmt.Errorf("decode the tables of the batch: %w", err)
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list, _, err := entries(op, all[name])
		if err != nil {
			return nil, nil, err
		}
		total += len(list)
	}
	first := tables{}
	rest = tables{}
	keep := (total + 1) / 2
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list, with, err := entries(op, all[name])
		if err != nil {
			return nil, nil, err
		}
		n := min(keep, len(list))
		keep -= n
		if n > 0 {
			first[name], err = with(list[:n])
		}
		if err == nil && n < len(list) {
			rest[name], err = with(list[n:])
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if batch["RequestItems"], err = json.Marshal(first); err != nil {
		return nil, nil, err
	}
	half, err = json.Marshal(batch)
	return half, rest, err
}

// entries returns the entries of a table in a batch, and how to make the same
// request with others.
func entries(op string, request json.RawMessage) (list []json.RawMessage, with func([]json.RawMessage) (json.RawMessage, error), err error) {
	if op == "BatchWriteItem" {
		err = json.Unmarshal(request, &list)
		return list, func(l []json.RawMessage) (json.RawMessage, error) { return json.Marshal(l) }, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(request, &object); err != nil {
		return nil, nil, err
	}
	if err := json.Unmarshal(object["Keys"], &list); err != nil {
		return nil, nil, err
	}
	return list, func(l []json.RawMessage) (json.RawMessage, error) {
		other := maps.Clone(object)
		keys, err := json.Marshal(l)
		if err != nil {
			return nil, err
		}
		other["Keys"] = keys
		return json.Marshal(other)
	}, nil
}

// withUnprocessed adds the unprocessed rest to a reply.
func withUnprocessed(op string, body []byte, rest tables) ([]byte, error) {
	var reply map[string]json.RawMessage
	if err := json.Unmarshal(body, &reply); err != nil {
		return nil, fmt.Errorf("decode the reply to the batch: %w", err)
	}
	name := "UnprocessedItems"
	if op == "BatchGetItem" {
		name = "UnprocessedKeys"
	}
	unprocessed, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	reply[name] = unprocessed
	return json.Marshal(reply)
}
