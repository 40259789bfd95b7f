package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowKey is a key whose signatures take a while.
type slowKey struct {
	crypto.Signer

	now, most atomic.Int64
}

func (k *slowKey) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	n := k.now.Add(1)
	defer k.now.Add(-1)
	for most := k.most.Load(); n > most && !k.most.CompareAndSwap(most, n); most = k.most.Load() {
	}
	time.Sleep(time.Millisecond)
	return k.Signer.Sign(random, digest, opts)
}

// Signatures have no more places at a time than there are, and each is made.
func TestSignersHaveFewPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		key := &slowKey{Signer: private}
		s := signer{key, make(signers, 2)}
		var g sync.WaitGroup
		for range 20 {
			g.Go(func() {
				if _, err := s.Sign(rand.Reader, make([]byte, 32), crypto.SHA256); err != nil {
					t.Error(err)
				}
			})
		}
		g.Wait()
		if most := key.most.Load(); most != 2 {
			t.Errorf("%d signatures at one time, want 2", most)
		}
	})
}
