package answering

import "testing"

func TestOtherMachinesAreNotThisOne(t *testing.T) {
	for _, remote := range []string{"192.0.2.7:1000", "[2001:db8::1]:1000"} {
		if onLoopback(remote) {
			t.Errorf("%s counts as this machine", remote)
		}
	}
}
