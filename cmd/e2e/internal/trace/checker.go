package trace

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Checker follows the objects of one store. It is not safe for concurrent use.
type Checker struct {
	objects map[string]object
	shards  map[int]*shardState
	// cuts are those of the generations in the store, by document.
	cuts       map[string]map[string]int64
	leases     map[string]int64 // the highest number of each lease
	violations []error
}

// object is what the checker knows of an object.
type object struct {
	sum [sha256.Size]byte
	doc any // a parsed document, nil for other objects
}

// shardState is what the rules of a shard need.
type shardState struct {
	head        int64
	boundary    int64
	manifests   map[int64]*manifest
	checkpoints map[int64]*checkpoint
	cursors     map[string]map[cursor]bool // that the shard has had, by object
}

// NewChecker returns a checker of an empty store.
func NewChecker() *Checker {
	return &Checker{objects: map[string]object{}, shards: map[int]*shardState{}, cuts: map[string]map[string]int64{},
		leases: map[string]int64{}}
}

// Err lists the changes that the specification does not allow, nil if there were none.
func (c *Checker) Err() error { return errors.Join(c.violations...) }

// Objects is how many objects the store holds now.
func (c *Checker) Objects() int { return len(c.objects) }

// Observe tells that an object now holds data, or is gone (nil). It reports whether that is a
// change.
func (c *Checker) Observe(key string, data []byte) bool {
	old, existed := c.objects[key]
	now := object{sum: sha256.Sum256(data)}
	if data == nil && !existed || data != nil && existed && now.sum == old.sum {
		return false
	}
	rule := c.ruleOf(key)
	switch {
	case data == nil:
		delete(c.objects, key)
		if rule.removed != nil {
			rule.removed(old)
		}
	default:
		c.objects[key] = object{sum: now.sum}
		if rule.written != nil {
			now.doc = rule.written(data, old, existed)
			c.objects[key] = now
		}
	}
	return true
}

// rule is what may happen to an object. Both functions are called after the change.
type rule struct {
	written func(data []byte, old object, existed bool) (doc any)
	removed func(old object)
}

// ruleOf finds the rule of a key. Objects without one may change at will.
func (c *Checker) ruleOf(key string) rule {
	var p, level int
	var number int64
	tail := func(format string, into ...any) bool {
		n, _ := fmt.Sscanf(key, format, into...)
		return n == len(into)
	}
	switch {
	case strings.HasPrefix(key, "lease/"):
		return c.leaseRule(key)
	case strings.HasPrefix(key, "generations/") && strings.HasSuffix(key, "/generation.json"):
		return c.generationRule(key)
	case tail("shards/%d/manifests/%d.json", &p, &number):
		return c.manifestRule(p, number, key)
	case tail("shards/%d/folded/%d.json", &p, &number):
		return c.foldedRule(key)
	case tail("shards/%d/rows/%d-", &p, &number):
		return c.rowsRule(p, number, key)
	case tail("shards/%d/state/checkpoints/%d.json", &p, &number):
		return c.checkpointRule(p, number, key)
	case tail("shards/%d/state/files/%d-", &p, &number):
		return c.stateFileRule(p, number, key)
	case tail("shards/%d/compacted/rows/%d-%d-", &p, &level, &number):
		return c.mergedRule(p, level, number, key)
	case tail("shards/%d/compacted/%d-%d.json", &p, &level, &number):
		return c.blockRule(p, level, number, key)
	case strings.HasSuffix(key, "/boundary.json") && tail("shards/%d/boundary.json", &p):
		return c.boundaryRule(p, key)
	case strings.HasSuffix(key, "/published.json") && tail("shards/%d/published.json", &p),
		strings.HasSuffix(key, "/canary.json") && tail("shards/%d/canary.json", &p):
		return c.cursorRule(p, key)
	}
	return rule{}
}

func (c *Checker) shard(p int) *shardState {
	s, ok := c.shards[p]
	if !ok {
		s = &shardState{manifests: map[int64]*manifest{}, checkpoints: map[int64]*checkpoint{},
			cursors: map[string]map[cursor]bool{}}
		c.shards[p] = s
	}
	return s
}

func (c *Checker) exists(key string) bool {
	_, ok := c.objects[key]
	return ok
}

// violated notes that a change broke a rule.
func (c *Checker) violated(rule, format string, args ...any) {
	c.violations = append(c.violations, fmt.Errorf("%s: "+format, append([]any{rule}, args...)...))
}

// parse decodes a document and reports whether it could.
func (c *Checker) parse(key string, data []byte, doc any) bool {
	if err := json.Unmarshal(data, doc); err != nil {
		c.violated("Documents", "%s does not parse: %v", key, err)
		return false
	}
	return true
}

// fixed reports a write to an object that exists already.
func (c *Checker) fixed(name, key string, existed bool) {
	if existed {
		c.violated(name, "%s was replaced by other bytes", key)
	}
}
