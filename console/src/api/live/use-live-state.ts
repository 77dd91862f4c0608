import { useSyncExternalStore } from 'react';
import { type LiveState, liveState, onLiveState } from './events.ts';

export const useLiveState = (): LiveState => useSyncExternalStore(onLiveState, liveState);
