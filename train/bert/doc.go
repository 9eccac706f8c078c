// Package bert encodes text with a BERT-family model from a Hugging Face
// directory (config.json, model.safetensors, vocab.txt).
//
//	e, err := bert.Open(os.DirFS("all-MiniLM-L6-v2"), cpu.New(), bert.Options{Pooling: compute.Mean})
//	err = e.Encode(texts, out) // len(texts) × e.Dim()
//
// Encoder is a train.Encoder of the kind "bert". Model is the network alone;
// it runs on any compute.Backend. Tokens come from package wordpiece. Which
// directories are accepted is written down in docs/format/bert.md; what is
// not implemented is refused with ErrUnsupported when the directory is opened,
// never guessed.
//
// Embeddings have length 1: the mean over a text's tokens, or the [CLS] token
// after the model's pooler (the token as it is, where the model has none).
//
// # Batches
//
// Texts are packed into batches of about a thousand tokens, without padding,
// and as many batches run side by side as there are workers; memory is that
// many times the activations of a batch, however many texts there are. Which
// texts share a batch changes no bit of an embedding (package compute).
//
// Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
// Language Understanding" (2019). Reimers and Gurevych, "Sentence-BERT" (2019),
// for mean pooling.
package bert
