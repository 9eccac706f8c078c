package generation

import (
	"context"
	"fmt"
	"io"
	"strings"

	"giantstream/sink"
)

// CopyTo copies a complete generation to another store: its objects but for the embeddings, each verified, and then
// d as its document.
func (d *Doc) CopyTo(ctx context.Context, from, into sink.Store) error {
	known := map[string]sink.Ref{}
	for ref := range d.Refs {
		known[ref.Key] = ref
	}
	prefix := Prefix(d.Generation)
	for info, err := range from.List(ctx, prefix, "") {
		if err != nil {
			return err
		}
		if info.Key == docKey(d.Generation) || strings.HasPrefix(info.Key, prefix+"embeddings/") {
			continue
		}
		ref, ok := known[info.Key]
		if !ok && len(d.Files) > 0 {
			continue // left by the build
		}
		if err := copyObject(ctx, from, into, info.Key, ref, ok); err != nil {
			return fmt.Errorf("copy %s of generation %d: %w", info.Key, d.Generation, err)
		}
	}
	return d.save(ctx, into)
}

func copyObject(ctx context.Context, from, into sink.Store, key string, ref sink.Ref, verified bool) error {
	var object sink.Object
	var err error
	if verified {
		object, err = sink.OpenVerified(ctx, from, ref)
	} else {
		object, err = from.Open(ctx, key)
	}
	if err != nil {
		return err
	}
	defer object.Close()
	return into.Put(ctx, key, io.NewSectionReader(object, 0, object.Size()), object.Size())
}
