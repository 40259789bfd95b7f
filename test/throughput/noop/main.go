// Command noop serves the rate limit protocol on default grpc-go: each call has the answer that it read
// from its standard input. It prints its address, and ends when its input does.
package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

type noop struct {
	rlsv3.UnimplementedRateLimitServiceServer

	answer *rlsv3.RateLimitResponse
}

// ShouldRateLimit implements rlsv3.RateLimitServiceServer.
func (n *noop) ShouldRateLimit(context.Context, *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	return n.answer, nil
}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:forbidigo // main is where the program ends
	}
}

func serve() error {
	var line string
	if _, err := fmt.Fscanln(os.Stdin, &line); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line))
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	n := &noop{answer: &rlsv3.RateLimitResponse{}}
	if err := proto.Unmarshal(data, n.answer); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, listener.Addr()); err != nil {
		return err
	}
	server := grpc.NewServer()
	rlsv3.RegisterRateLimitServiceServer(server, n)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		server.Stop()
	}()
	return server.Serve(listener)
}
