// Package embeddings has the stages that use the encoder. Encode embeds the texts, and Fill gives nodes without text
// the mean of their neighbours. Evaluate asks about hidden links and classes. MapParent and CompareParent compare with
// the generation before.
package embeddings
