package freeport_test

import (
	"net"
	"testing"

	"giantstream/internal/freeport"
)

func TestAddrIsFreeAndGivenOnce(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		addr, err := freeport.Addr(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if seen[addr] {
			t.Fatalf("%s was given twice", addr)
		}
		seen[addr] = true
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
