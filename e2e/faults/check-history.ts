import {
  accessAfterEnd,
  brokenRuns,
  lostOutput,
  lostWrites,
  missingEffects,
  repeatedEffects,
  secondEnds,
  unclearRefusals,
} from './client-invariants.ts';
import type { History, Violation } from './history.ts';
import { forkedChain, gapsInStreams, staleWrites, unrecordedWrites } from './log-invariants.ts';

/** All invariants. Each returns its violations in a history. */
const invariants: readonly ((history: History) => Violation[])[] = [
  lostWrites,
  secondEnds,
  repeatedEffects,
  missingEffects,
  brokenRuns,
  accessAfterEnd,
  unclearRefusals,
  lostOutput,
  forkedChain,
  gapsInStreams,
  unrecordedWrites,
  staleWrites,
];

/** Returns the violations of all invariants in a history. */
export const checkHistory = (history: History): Violation[] => invariants.flatMap((check) => check(history));
