// Package bert encodes text with a BERT-family model from a Hugging Face
// directory (config.json, model.safetensors, vocab.txt), and trains it.
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
// # Training
//
// Tuner is what a loss of the caller's needs of the network:
//
//	t, err := bert.NewTuner(model, tokenizer, bert.TuneOptions{Pooling: compute.Mean})
//	err = t.Forward(texts, seeds, out) // vectors of the texts, not normalised
//	err = t.Backward(grad)             // of the loss for out; adds to sums
//	norm, err := t.Update(rate)        // clip, AdamW, sums to zero
//	err = t.Encoder().Save(dir)        // as from_pretrained opens it
//
// Forward and Backward may run several times before an Update, for a batch
// larger than fits. Gradients are written out by hand, operation by operation
// (pass.go); there is no tape. A batch of any size is cut into batches of about a
// thousand tokens; four of them keep their activations, for the others the
// forward pass runs twice. So memory is 16 bytes per trained number, plus 18 KiB
// per token, layer and 384 of hidden size for 4,096 tokens.
//
// Weights are a function of the texts, seeds, gradients and rates: not of the workers,
// and not of where training was interrupted (WriteState, ReadState). A batch
// is cut where its texts say, so its gradient's last bits depend on their
// order.
//
// # Drop-out
//
// TuneOptions.Dropout is BERT's: of the embedded tokens, of the weights of
// attention, and of both halves of a layer before they are added.
// TuneOptions.DropTokens leaves whole tokens out of a text, so that none of them
// can answer for all of it; it makes a step cheaper by as much, and long texts are seen
// in full over some epochs. What is dropped of a text is a
// function of the seed that Forward gets with it (compute.Dropout): a counter
// stands in for a generator, so nothing is kept for the way back or written
// into a state. Encoders drop nothing.
//
// Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
// Language Understanding" (2019). Reimers and Gurevych, "Sentence-BERT" (2019),
// for mean pooling. Loshchilov and Hutter, "Decoupled Weight Decay
// Regularization" (2019), for AdamW.
package bert
