package main

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/ratelimit/ratelimit/pkg/rls"
	"github.com/ratelimit/ratelimit/test/kit/dynamotest"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// kuadrant calls a method of Kuadrant's service of a replica.
func kuadrant(t *testing.T, conn *grpc.ClientConn, method, request string) *dynamicpb.Message {
	t.Helper()
	file, err := rls.KuadrantDescriptor()
	if err != nil {
		t.Fatal(err)
	}
	m := file.Services().Get(0).Methods().ByName(protoreflect.Name(method))
	in, out := dynamicpb.NewMessage(m.Input()), dynamicpb.NewMessage(m.Output())
	if err := protojson.Unmarshal([]byte(request), in); err != nil {
		t.Fatal(err)
	}
	if err := conn.Invoke(t.Context(), "/"+rls.KuadrantServiceName+"/"+method, in, out); err != nil {
		t.Error(err)
	}
	return out
}

// Reserve and Commit are exact over replicas on one table: together they hold no more than the limit, whoever commits.
// When all is committed, exactly what was used is gone.
func TestReservationsOfKuadrantOverReplicas(t *testing.T) {
	const limit, amount, used, callers = 100, 30, 7, 24
	server, table := dynamotest.Start(t), dynamotest.TableName(t)
	config := fmt.Sprintf("store: {type: dynamodb, dynamodb: {table: %s, endpoint: %q, create_table: true}}\ndecision: {timeout: 10s, on_unavailable: deny}\ninclude: [{path: limits.yaml}]\n", table, server.URL)
	file := programtest.WriteFile(t, "c.yaml", config)
	rewrite(t, filepath.Join(filepath.Dir(file), "limits.yaml"), fmt.Sprintf("- {namespace: ns, name: tokens, max_value: %d, seconds: 86400, variables: ['descriptors[0].user']}\n", limit))
	replicas := make([]*grpc.ClientConn, 0, 3)
	for range 3 {
		conn, err := grpc.NewClient(start(t, "--config", file).grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		replicas = append(replicas, conn)
	}
	reserve := func(by int, amount int) string {
		out := kuadrant(t, replicas[by%3], "Reserve", fmt.Sprintf(`{"domain":"ns","descriptors":[{"entries":[{"key":"user","value":"ada"}]}],"amount":%d,"ttl":"30s"}`, amount))
		return out.Get(out.Descriptor().Fields().ByName("reservation_id")).String()
	}
	commit := func(by int, id string, used int) bool {
		out := kuadrant(t, replicas[by%3], "Commit", fmt.Sprintf(`{"domain":"ns","descriptors":[{"entries":[{"key":"user","value":"ada"}]}],"reservationId":%q,"actualAmount":%d}`, id, used))
		return out.Get(out.Descriptor().Fields().ByName("reservation_released")).Bool()
	}

	var wait sync.WaitGroup
	var mu sync.Mutex
	var held []string
	for i := range callers {
		wait.Go(func() {
			if id := reserve(i, amount); id != "" {
				mu.Lock()
				held = append(held, id)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if len(held) != limit/amount {
		t.Fatalf("%d reservations of %d are held under a limit of %d", len(held), amount, limit)
	}
	var released atomic.Int64
	for i, id := range held { // each twice, at different replicas
		for n := range 2 {
			wait.Go(func() {
				if commit(i+1+n, id, used) {
					released.Add(1)
				}
			})
		}
	}
	wait.Wait()
	if int(released.Load()) != len(held) {
		t.Errorf("%d reservations were released, want %d: each once", released.Load(), len(held))
	}
	left := limit - used*len(held)
	if reserve(0, left+1) != "" {
		t.Errorf("more than %d are left", left)
	}
	eventually(t, fmt.Sprintf("%d tokens, as no more were used", left), func() bool { return reserve(1, left) != "" })
}
