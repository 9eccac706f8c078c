// Package freeport finds loopback addresses for servers of tests that must know their address
// before they listen: a broker that is killed and comes back where it was, or a server of another
// program.
package freeport

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The ports below are in no system's ephemeral range (from 32768 on Linux, from 49152 elsewhere),
// from which it gives an outgoing connection any port that nobody listens on at the moment: it
// would take a port between the search and the listener, or while a server is down.
const first, last = 20000, 32000

var (
	mu    sync.Mutex
	given = map[int]bool{}
)

// Addr returns a loopback address without a listener. It returns none twice in one process, and
// draws them at random, so that two processes rarely meet.
func Addr(ctx context.Context) (string, error) {
	mu.Lock()
	defer mu.Unlock()
	var err error
	for range 100 {
		port := first + rand.N(last-first)
		if given[port] {
			continue
		}
		var l net.Listener
		addr := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", addr); err != nil {
			continue
		}
		given[port] = true
		return addr, l.Close()
	}
	return "", fmt.Errorf("no free port between %d and %d on 127.0.0.1: %w", first, last, err)
}
