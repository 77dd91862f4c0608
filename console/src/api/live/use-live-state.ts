import { useSyncExternalStore } from 'react';
import { type LiveState, liveState, onLiveState } from './event-stream.ts';

export const useLiveState = (): LiveState => useSyncExternalStore(onLiveState, liveState);
