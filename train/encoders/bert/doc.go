// Package bert encodes text with a BERT-family model from a Hugging Face
// directory (config.json, model.safetensors, vocab.txt), and trains it.
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
// Texts are packed into batches of about a thousand tokens, without padding. Each worker runs one
// batch at a time, so memory is the activations of one batch per worker, however many texts there
// are. Which texts share a batch changes no bit of an embedding (package compute).
//
// # Devices
//
// A backend that is a compute.Batcher gets batches of the size that it asks for, in encoding two at
// a time. Close frees what an encoder or a tuner holds there; the garbage collector frees what an
// encoder holds that nobody closes. A tuner's state has nothing of a device in it, so training moves
// from one to another between any two steps. What fails on a device is compute.ErrFailed here.
//
// # Training
//
// A Tuner trains the network for a loss that the caller computes: Forward, Backward and Update. Its
// Encoder can be saved so that from_pretrained opens it. Network is a tuner as a train.Network: it
// takes instances for texts, and tokenizes each text once.
//
// Forward and Backward may run several times before an Update, for a batch
// larger than fits. Gradients are written out by hand, operation by operation
// (pass.go); there is no tape. A batch of any size is cut into batches of about a
// thousand tokens; four of them keep their activations, for the others the
// forward pass runs twice. So memory is 16 bytes per trained number, plus 18 KiB
// per token, layer and 384 of hidden size for 4,096 tokens.
//
// Weights are a function of the texts, seeds, gradients and rates: not of the workers, and not of
// where training was interrupted (WriteState, ReadState). A batch is cut by the lengths of its
// texts, so the last bits of its gradient depend on their order.
//
// # Drop-out
//
// TuneOptions.Dropout is BERT's: of the embedded tokens, of the weights of attention, and of both
// halves of a layer before they are added. TuneOptions.DropTokens leaves whole tokens out of a
// text, so that the embedding does not rest on a single token. A step becomes cheaper by the same
// share, and long texts are seen in full over several epochs. What is dropped of a text is a
// function of the seed that Forward gets with it (compute.Dropout). It is drawn by a counter
// instead of a generator with state, so nothing is kept for the backward pass or written into a
// checkpoint. Encoders drop nothing.
//
// Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
// Language Understanding" (2019). Reimers and Gurevych, "Sentence-BERT" (2019),
// for mean pooling. Loshchilov and Hutter, "Decoupled Weight Decay
// Regularization" (2019), for AdamW.
package bert
