// Package external asks a model behind a URL for the vectors of texts, by the protocol of OpenAI's POST
// /v1/embeddings, which vLLM, Text Embeddings Inference, Ollama and giantstream itself speak.
//
// A Client asks in batches, a few at once, at a bounded rate. Embed waits for an endpoint that fails, for as long as it
// does; Ask asks once, for a question that somebody waits for. Both check what comes: a vector for each text, of the
// length that was agreed, of finite numbers. Fill has a topic of nodes' texts in a topic of vectors.
//
// An endpoint that refuses a text, as models do with one that is too long, is asked for the text's beginning, as most
// models cut texts by themselves. If it takes none of the text but answers others, the text has no vector.
package external
