// Package warmstart has the stage that decides whether a generation starts from what its parent has learned, and keeps
// what later stages take of the parent. LoadDecision tells the stages what was decided; KeepArtifact makes an artifact
// of the parent the generation's own.
package warmstart
