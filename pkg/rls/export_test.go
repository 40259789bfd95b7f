package rls

import "context"

// AnswerWire answers a call in the wire form of a RateLimitRequest.
func AnswerWire(s *Service, ctx context.Context, wire []byte) error { //nolint:revive // the service is the receiver
	_, err := s.answerWire(ctx, wire)
	return err
}
