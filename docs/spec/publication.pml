/*
 * Publication and its cursor: PROTOCOL.md, "Publication".
 *
 * FOLLOWERS followers publish one shard to a compacted topic, of which only the last record of each node
 * counts. Manifests 1 to 4 state node a, state node b, delete b, and state a again. Generation 1 is current
 * from the start; generation 2, whose cut is manifest 3, becomes current at some point (GENERATIONS=2).
 *
 * A follower may be killed at any point, and stand still for any time. Every call of the store may fail,
 * with or without effect. Kafka fences nobody: what a zombie sends, arrives.
 *
 * A follower may send the rows of several manifests, one after another and with any time in between, before
 * it moves the cursor past all of them (AHEAD=1; with AHEAD=0 those of one, and the assumption below is
 * stronger: whenever the records were sent).
 *
 * Assumed, because nothing in the protocol can repair it (PROTOCOL.md says so): a follower that has sent
 * records while another follower was at work, or after the cursor had passed its position, does not die
 * before it has moved the cursor or found out, unless the other one has died and the cursor is not past.
 *
 * Not modelled: `ahead` of the cursor (rows that are left out because newer ones supersede them), control records,
 * and the withdrawal of a generation; README.md says which tests check them. A canary topic is a second cursor and a
 * second topic, which share nothing with the first: the model is about each of them.
 *
 * The store replaces the cursor only if it is still the version that was read. On a store that cannot,
 * reading and saving are two calls (BUG_TWO_CALLS).
 *
 * run -DFOLLOWERS=3 -DAHEAD=0
 * run -DFOLLOWERS=2
 *
 * mutants -DFOLLOWERS=2
 * mutant BUG_NO_MOVE_BACK     NewestIsLast    a late zombie does not move the cursor back
 * mutant BUG_FORGET_POSITION  NewestIsLast    a follower forgets its position when moving back fails
 * mutant BUG_TWO_CALLS        NewestIsLast    a move back between another's reading and saving is lost
 * mutant BUG_KEEP_CURSOR      NewestIsLast    a failed follower leaves a cursor that another is about to move
 * mutant BUG_BLIND_SAVE       NewestIsLast    a follower moves the cursor wherever it is
 * mutant BUG_SAVE_FIRST       NewestIsLast    the cursor moves before the broker has acknowledged the records
 * mutant BUG_NO_DELETIONS     NewestIsLast    a switch of the generation does not catch up with deletions
 * mutant BUG_CHANGED_TOO      TextsGoForward  a switch publishes nodes that have changed after the cut
 * mutant BUG_DIE_LATE         NewestIsLast    the assumption above does not hold
 */

#define MANIFESTS 4
#define CUT 3

#ifndef GENERATIONS
#define GENERATIONS 2
#endif
#ifndef AHEAD
#define AHEAD 1                /* of the cursor: the rows of several manifests */
#endif

#ifdef BUG_TWO_CALLS
#define SWAP 0
#else
#define SWAP 1
#endif

hidden byte NewestIsLast, TextsGoForward;

byte head;
byte current = 1;               /* generation */
byte cursorGen = 1, cursorSeq;  /* published.json */
byte topicA, topicB;            /* last record of each node: its manifest */
byte topicGen;                  /* and the generation of a's */
byte busy;                      /* followers that are in the middle of something */
byte replaced = (1 << FOLLOWERS) - 1;                  /* the cursor, since a follower has read it: bit per follower */

#define ME (1 << (_pid - 1))
#define past(g, s) (cursorGen > (g) || cursorSeq > (s))

mtype = { Idle, Send, Parts, Check, Save, Back, BackSave, Dead };

/* Whoever has read the cursor before sees that it is another one. */
inline save(g, s) { cursorGen = g; cursorSeq = s; replaced = (1 << FOLLOWERS) - 1 }

/* Records have arrived on the topic. */
inline sent() {
	sending = 1;
	if :: !AHEAD || busy > 1 || past(gen, seq) -> late = 1 :: else fi
}

proctype Follower() {
	byte gen, seq;        /* the cursor when this step began */
	byte model;           /* the generation of this step */
	byte toGen, toSeq;    /* where the cursor goes next */
	bit sending;          /* records were sent that the cursor does not cover */
	bit late;             /* some of them while another follower was at work, or with the cursor past them */
	mtype pc = Idle;

end:	do
	/* A step begins: read the cursor and the current generation. */
	:: atomic { pc == Idle && (current > cursorGen || cursorSeq < head) ->
		gen = cursorGen; seq = cursorSeq; replaced = replaced & ~ME; model = current; busy++;
		if
		:: model > gen -> toGen = model; toSeq = CUT; pc = Send
		:: model <= gen && seq < head -> toGen = model; toSeq = seq + 1; pc = Send
		:: else -> busy--; gen = 0; seq = 0; model = 0
		fi;
#ifdef BUG_SAVE_FIRST
		if :: pc == Send -> save(toGen, toSeq) :: else fi
#endif
		}

	/* Send the row of one manifest, or the deletions up to the cut, and wait for the acknowledgement. */
	:: atomic { pc == Send && model <= gen ->
		sent();
		if
		:: toSeq == 1 || toSeq == 4 -> topicA = toSeq; topicGen = model
		:: toSeq == 2 || toSeq == 3 -> topicB = toSeq
		fi;
		pc = Check }
	:: atomic { pc == Send && model > gen ->
#ifndef BUG_NO_DELETIONS
		if :: seq < CUT -> sent(); topicB = 3 :: else fi;
#endif
		pc = Parts }
	/* Send the generation's own embeddings: a's, unless it changed after the cut. */
	:: atomic { pc == Parts ->
#ifndef BUG_CHANGED_TOO
		if
		:: head < 4 -> sent(); topicA = 1; topicGen = model
		:: else
		fi;
#else
		assert(TextsGoForward || topicA != 4);
		sent(); topicA = 1; topicGen = model;
#endif
		pc = Check }
	/* Sending fails, with or without effect. */
	:: atomic { (pc == Send || pc == Parts) -> sending = 1; late = late | !AHEAD; pc = Back }

	/* Not yet: read the cursor, which nobody else has moved, and go on behind it. */
	:: atomic { pc == Check && AHEAD && model <= gen && toSeq < head && !(replaced & ME) -> toSeq++; pc = Send }
	/* Read the cursor again, and move it. */
#ifdef BUG_SAVE_FIRST
	:: atomic { pc == Check -> sending = 0; goto idle }
#endif
	:: atomic { pc == Check && !SWAP ->
#ifndef BUG_BLIND_SAVE
		if
		:: cursorGen == gen && cursorSeq == seq -> pc = Save
		:: else -> pc = Back
		fi
#else
		pc = Save
#endif
		}
	:: atomic { pc == Save ->
		save(toGen, toSeq);
		if :: sending = 0; goto idle :: pc = Back /* the answer is lost */ fi }
	:: atomic { pc == Check && SWAP ->
#ifdef BUG_BLIND_SAVE
		save(toGen, toSeq); sending = 0; goto idle
#else
		if
		:: !(replaced & ME) ->
			save(toGen, toSeq);
			if :: sending = 0; goto idle :: pc = Back fi
		:: else -> pc = Back
		fi
#endif
		}
	/* The store fails. */
	:: atomic { (pc == Check || pc == Save) -> pc = Back }

	/* Move back: return the cursor to where this follower sent from, if it is past that. Write it again
	   if it is not, because another follower may be about to move it. */
	:: atomic { pc == Back ->
#ifdef BUG_NO_MOVE_BACK
		sending = 0; goto idle
#endif
		if
		:: !sending -> goto idle
#ifdef BUG_KEEP_CURSOR
		:: sending && !past(gen, seq) -> sending = 0; goto idle
		:: sending && past(gen, seq) -> replaced = replaced & ~ME; pc = BackSave
#else
		:: sending -> replaced = replaced & ~ME; pc = BackSave
#endif
		fi }
	:: atomic { pc == BackSave ->
		if
		:: (!SWAP || !(replaced & ME)) && past(gen, seq) -> save(gen, seq); sending = 0; goto idle
		:: (!SWAP || !(replaced & ME)) && !past(gen, seq) -> save(cursorGen, cursorSeq); sending = 0; goto idle
		:: else -> pc = Back
		fi }
	/* The store fails: try again, before anything else. */
#ifdef BUG_FORGET_POSITION
	:: atomic { (pc == Back || pc == BackSave) -> goto idle }
#endif

	/* The process is killed. */
#ifdef BUG_DIE_LATE
	:: atomic { pc != Idle -> goto idle }
#else
	:: atomic { pc != Idle && (!sending || !late || busy == 1 && !past(gen, seq)) -> goto idle }
#endif
	od;
idle:	/* Another process takes this one's place, or the next step begins. */
	atomic {
		replaced = replaced | ME; gen = 0; seq = 0; model = 0; toGen = 0; toSeq = 0; sending = 0; late = 0;
		busy--; pc = Idle; goto end }
}

/* The shard's worker commits, and a generation becomes current. */
proctype World() {
end:	do
	:: atomic { head < MANIFESTS -> head++ }
	:: atomic { current < GENERATIONS && head >= CUT -> current = 2 }
	:: atomic { head == MANIFESTS && busy == 0 && cursorGen == current && cursorSeq == MANIFESTS ->
		assert(NewestIsLast || (topicA == 4 && topicB == 3 && topicGen == current)) }
	od
}

init {
	atomic {
		byte i;
		for (i : 1 .. FOLLOWERS) { run Follower() }
		run World()
	}
}
