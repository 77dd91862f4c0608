import { useSyncExternalStore } from 'react';
import { type LiveState, liveState, onLiveState } from './live.ts';

export const useLiveState = (): LiveState => useSyncExternalStore(onLiveState, liveState);
