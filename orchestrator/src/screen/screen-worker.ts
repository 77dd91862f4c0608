import { parentPort, workerData } from 'node:worker_threads';
import { buildScreen, type ScreenJob } from './build-screen.ts';

/** The thread builds a single screen, so that the effects of hostile bytes end with it. */
const port = parentPort;
if (!port) throw new Error('This file runs as a worker thread');
void buildScreen(workerData as ScreenJob).then((screen) => port.postMessage(screen));
