package config

import (
	_ "embed"
	"slices"
	"sync"
	"time"

	"github.com/goccy/go-yaml/ast"
)

//go:embed example.yaml
var example []byte

// Example returns a configuration file that describes every field. Its values are the defaults.
func Example() []byte { return slices.Clone(example) }

// exampleBody is the example's syntax tree, which takes a millisecond to make.
var exampleBody = sync.OnceValue(func() ast.Node { return new(decoder).syntax(example) })

// Default returns the configuration of an empty file: the values of Example. It is valid.
func Default() Config {
	var c Config
	d := newDecoder(&c, nil, func(string) (string, bool) { return "", false })
	d.value("", exampleBody(), d.config)
	return c
}

// Local returns the configuration of a command that is given a directory in place of a file. Its
// windows are as large as memory allows, since no user waits for the first embedding, and no port
// is open but the embedded broker's.
func Local() Config {
	c := Default()
	c.Pipeline = "giantstream"
	c.Shards = 4
	c.Window.Time = 15 * time.Second
	c.HTTP.Listen = ""
	return c
}
