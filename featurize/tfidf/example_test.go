package tfidf_test

import (
	"fmt"
	"log"

	"giantstream/featurize/tfidf"
)

// A model is fitted to all texts and then vectorizes any text.
func Example() {
	profile, err := tfidf.ParseProfile("default")
	if err != nil {
		log.Fatal(err)
	}
	f, err := tfidf.NewFitter(profile.Options())
	if err != nil {
		log.Fatal(err)
	}
	f.AddAll([]string{"red wool socks", "red cotton shirt", "blue wool hat", "blue cotton socks"}, 0)
	m, err := f.Fit()
	if err != nil {
		log.Fatal(err)
	}
	x := m.TransformAll([]string{"red socks", "green tea"}, 0)
	fmt.Println(len(x.Row(0).Index) > 0, len(x.Row(1).Index))
	// Output: true 0
}
