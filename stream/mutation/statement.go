package mutation

// Statement is what one record of an input topic says, as a whole: any number of mutations. It is the
// unit in which input is accounted for: one record sent is one statement, and every statement has one
// outcome. See docs/PROTOCOL.md, "Conservation".
type Statement struct {
	// Offset of the record in its topic, as the commit log counts. It is not that of its Versions where
	// the record is a copy.
	Offset int64
	// Mutations is how many mutations of the batch, after those of the statements before, are of this
	// one. Of a record that states nothing it is 0.
	Mutations int32
	Input     Input
	// Refused: the record is a dead letter as a whole.
	Refused bool
}

// Input is the number of a topic that a shard reads, which is the rank of the versions that its records give.
// Inputs beside nodes and edges are numbered from Further on, in the order in which the pipeline first named them
// (commitlog.Identity). No number is used twice.
type Input uint8

// The inputs.
const (
	Nodes   Input = 0
	Edges   Input = 1
	Further Input = 2
	// Mirror has no rank: what it carries has the versions of the records that stated it.
	Mirror Input = 255
)

// State adds the statement of a record to a batch. It leaves Next alone.
func (b *Batch) State(in Input, offset int64, said ...Mutation) {
	b.Statements = append(b.Statements, Statement{Offset: offset, Mutations: int32(len(said)), Input: in})
	b.Mutations = append(b.Mutations, said...)
}

// Outcomes count statements by what became of them. Every statement counts once.
type Outcomes struct {
	// Applied statements were the newest on a node, a link or a node's list of links, and said
	// something that the graph did not have.
	Applied int64 `json:"applied"`
	// Superseded statements changed nothing: the graph had newer ones.
	Superseded int64 `json:"superseded,omitempty"`
	// Repeated statements changed nothing: the graph had what they say, as of the same event time.
	Repeated int64 `json:"repeated,omitempty"`
	// Expired statements say of an order, or of its lines, that they were ordered longer ago than orders count.
	Expired int64 `json:"expired,omitempty"`
	// DeadLetters are statements that were refused as a whole.
	DeadLetters int64 `json:"dead_letters,omitempty"`
	// Empty statements say nothing: edge records without edges.
	Empty int64 `json:"empty,omitempty"`
}

// Sum is how many statements have an outcome.
func (o Outcomes) Sum() int64 {
	return o.Applied + o.Superseded + o.Repeated + o.Expired + o.DeadLetters + o.Empty
}

// Plus returns the sum by outcome.
func (o Outcomes) Plus(p Outcomes) Outcomes {
	return Outcomes{o.Applied + p.Applied, o.Superseded + p.Superseded, o.Repeated + p.Repeated,
		o.Expired + p.Expired, o.DeadLetters + p.DeadLetters, o.Empty + p.Empty}
}

// Minus returns what was counted after an earlier count.
func (o Outcomes) Minus(p Outcomes) Outcomes {
	return Outcomes{o.Applied - p.Applied, o.Superseded - p.Superseded, o.Repeated - p.Repeated,
		o.Expired - p.Expired, o.DeadLetters - p.DeadLetters, o.Empty - p.Empty}
}
