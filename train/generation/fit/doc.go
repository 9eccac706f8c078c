// Package fit has the stages of a generation as functions: from a graph and its texts to a trained
// encoder and an evaluation. It knows neither the store nor documents; packages generation (which
// keeps and resumes) and study (which compares) call the stages in this order:
//
//	HideEdges                   known graph, hidden edges
//	Vectorizer, Vectorize       Ψ of every text
//	Projection, Project         every text in ProjectionDim numbers
//	LabelFeatures, BuildTree    PIFA and the label tree
//	Train                       an encoder, from Inputs, which holds all of the above
//	Embed, Exam.Evaluate        embeddings of all nodes, and what they predict
//
// A stage is a pure function of its arguments and Settings. Resources (goroutines, memory, where to
// report) never change an outcome. What grows with the texts (Texts, Features, Projected) is
// spooled: it moves to a temporary file above a share of Resources.MemoryLimit, and has to be
// closed.
//
// # Encoders
//
// kinds.go has the table of all encoders. Each is trained in a file of its own. A training that
// takes long keeps checkpoints in a Journal, so that an interrupted one resumes; NoJournal keeps
// none.
package fit
