// Package training has the stages that train the encoder. WriteDataset writes the training set. TrainEncoder takes a
// sample of the graph and trains on it: task 0 leads and stores the encoder, and the other tasks of the stage work on
// slices of its batches. Processes meet in a folder of the store (meeting.go); a training that is cut off resumes from
// a checkpoint (journal.go).
package training
