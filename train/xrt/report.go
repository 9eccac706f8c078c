package xrt

// Report says how training went.
type Report struct {
	Instances int64 `json:"instances"`
	Steps     int64 `json:"steps"`
	// Level is D, the level of the tree whose training gave the embeddings
	// (with Joint the finest), -1 if no training was better than none; Step
	// is the number of steps taken by then.
	Level int   `json:"level"`
	Step  int64 `json:"best_step"`
	// Curve is the training loss, Judged the scores on what was held out.
	Curve  []Point    `json:"curve"`
	Judged []Judgment `json:"judged,omitempty"`
	// Resumed is the step that training was resumed after, 0 if from the start.
	Resumed int64 `json:"resumed_step,omitempty"`
}

// Point is the mean loss of the steps since the last point. Losses of
// different levels cannot be compared.
type Point struct {
	Step int64 `json:"step"`
	// Level is the finest level in training.
	Level int     `json:"level"`
	Loss  float64 `json:"loss"`
}

// Judgment is a score of the weights after a step.
type Judgment struct {
	Step  int64   `json:"step"`
	Level int     `json:"level"`
	Score float64 `json:"score"`
}

// curvePoints is about how many points a whole curve has.
const curvePoints = 256
