package schema_test

import (
	"context"
	"time"

	"giantstream/ingest/schema"
)

func Example() {
	registry, err := schema.NewRegistry(schema.Options{URL: "https://registry:8081", Clock: time.Now})
	if err != nil {
		return
	}
	const maxBytes = 1 << 20
	values, err := schema.NewTranslator(schema.Avro, registry, maxBytes)
	if err != nil {
		return
	}
	value := []byte{0, 0, 0, 0, 17 /* … */} // a value of schema 17
	json, fault, err := values.JSON(context.Background(), nil, value)
	switch {
	case err != nil: // the registry could not be asked: try the same value later
	case fault != nil: // the value becomes a dead letter
	default:
		_ = json // the decoder reads it
	}
}
