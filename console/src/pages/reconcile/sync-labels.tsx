import type { SyncState } from '@muster/protocol/sync-state';
import type { OffFinding } from '../../../../client/src/reason-words.ts';
import { Dot } from '../../parts/badge.tsx';
import { findingTones, findingWords } from './sync-tones.ts';

/** Sync states and their reasons look alike on all pages: a dot and a word. */
export const FindingLabel = ({ finding }: { readonly finding: OffFinding | SyncState }) => (
  <Dot tone={findingTones[finding]}>{findingWords[finding]}</Dot>
);
