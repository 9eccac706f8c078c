package trainer

// Report says how training went.
type Report struct {
	Instances int64 `json:"instances"`
	Steps     int64 `json:"steps"`
	// Level is D, the level of the tree whose training gave the embeddings
	// (of a joint training the finest), -1 if no training was better than none; Step
	// is the number of steps taken by then.
	Level int   `json:"level"`
	Step  int64 `json:"best_step"`
	// Curve is the training loss, Scores the validation scores.
	Curve  []Point `json:"curve"`
	Scores []Score `json:"judged,omitempty"`
	// Epochs are the complete passes over the instances.
	Epochs []Epoch `json:"-"`
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

// Score is a validation score of the weights after a step.
type Score struct {
	Step  int64   `json:"step"`
	Level int     `json:"level"`
	Score float64 `json:"score"`
}

// Epoch is a complete pass over the instances: its last step, the finest level in training
// and the mean loss.
type Epoch struct {
	Step  int64
	Level int
	Loss  float64
}

// ScoreAt returns the validation score after a step, if there is one.
func (r *Report) ScoreAt(step int64) (score float64, ok bool) {
	for _, s := range r.Scores {
		if s.Step == step {
			return s.Score, true
		}
	}
	return 0, false
}

// curvePoints is about how many points a whole curve has.
const curvePoints = 256
