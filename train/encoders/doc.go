// Package encoders stores trained encoders: Save writes an encoder as a few
// objects under a prefix (generations/<g>/encoder), Load makes it work again.
//
//	config.json        kind, dimensions, seed, metrics, checksum of the other
//	model.safetensors  the trained numbers
//	bert/              the model directory of a BERT; what stands beside it is in the file above
//
// The vectorizer and the projection that an encoder was trained on are artifacts of the generation.
// The caller passes them to Load, which refuses them if their sizes are not those of the training.
// config.json is written last, so an encoder without it was not finished. docs/format/encoder.md is
// the page of the format.
package encoders
