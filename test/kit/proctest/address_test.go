package proctest

import (
	"net"
	"testing"
)

// An address has one owner while its test runs, and none afterwards.
func TestFreeAddressHasOneOwner(t *testing.T) {
	var address string
	t.Run("owner", func(t *testing.T) {
		address = FreeAddress(t)
		if claim, err := reserve(t.Context(), address); err == nil {
			_ = claim.Close()
			t.Errorf("%s is given twice", address)
		}
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatalf("its owner cannot listen: %v", err)
		}
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
	})
	claim, err := reserve(t.Context(), address)
	if err != nil {
		t.Fatalf("it is not free after its test: %v", err)
	}
	if err := claim.Close(); err != nil {
		t.Error(err)
	}
}
