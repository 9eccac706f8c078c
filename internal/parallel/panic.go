package parallel

import (
	"fmt"
	"runtime/debug"
	"sync"
)

// Panic is what Each panics with if body panicked on another goroutine: the value, and where it was.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// panics keeps the first panic of several goroutines.
type panics struct {
	once  sync.Once
	first *Panic
}

// keep is deferred by each goroutine.
func (p *panics) keep() {
	if v := recover(); v != nil {
		stack := debug.Stack()
		p.once.Do(func() { p.first = &Panic{v, stack} })
	}
}

// raise panics again, in the goroutine that waited for the others.
func (p *panics) raise() {
	if p.first != nil {
		panic(p.first)
	}
}
