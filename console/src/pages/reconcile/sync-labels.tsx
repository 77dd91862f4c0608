import type { SyncState } from '@muster/protocol/sync-state';
import { type OffFinding, reasonWords } from '../../../../client/src/reason-words.ts';
import { Dot } from '../../parts/badge.tsx';
import { findingTones, syncTones, syncWords } from './sync-tones.ts';

/** Sync states and their reasons look alike on all pages: a dot and a word. */

export const SyncLabel = ({ state }: { readonly state: SyncState }) => (
  <Dot tone={syncTones[state]}>{syncWords[state]}</Dot>
);

export const FindingLabel = ({ finding }: { readonly finding: OffFinding }) => (
  <Dot tone={findingTones[finding]}>{reasonWords[finding]}</Dot>
);
