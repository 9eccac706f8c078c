package config_test

import (
	"fmt"

	"giantstream/config"
)

// A file is decoded over the defaults. All of its faults are reported at once, with their places.
func ExampleParse() {
	env := func(name string) (string, bool) { return "", false }
	c, err := config.Parse([]byte("store: s3://catalog/features\nwindow: {time: 250ms}\n"), env)
	fmt.Println(c.Store, c.Window.Time, c.Window.Changes, err)

	_, err = config.Parse([]byte("shards: none\nlog: {password: \"${SECRET}\"}\n"), env)
	fmt.Println(err)
	// Output:
	// s3://catalog/features 250ms 50000 <nil>
	// configuration: 2 faults
	// configuration:1:9: shards: must be a whole number
	//      1 | shards: none
	// configuration:2:7: log.password: unknown field; known here: level, format
	//      2 | log: {password: ***
}
