package server

import (
	"crypto"
	"io"
	"runtime"
)

// signers are the places of signatures at one time: half of the processors. Peers that open connections of
// TLS and leave cost a signature each, a millisecond with a key of RSA. They must not take all
// processors from calls.
type signers chan struct{}

func newSigners() signers { return make(signers, max(1, runtime.GOMAXPROCS(0)/2)) }

// signer is a private key that waits for a place.
type signer struct {
	crypto.Signer

	places signers
}

func (s signer) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	s.places <- struct{}{}
	defer func() { <-s.places }()
	return s.Signer.Sign(random, digest, opts)
}
