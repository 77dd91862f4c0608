import { parentPort, workerData } from 'node:worker_threads';
import { buildScreen, type ScreenJob } from './build-screen.ts';

/** Builds one screen in its own thread, so that hostile bytes affect no other screen. */
const port = parentPort;
if (!port) throw new Error('screen-worker.ts must run as a worker thread');
void buildScreen(workerData as ScreenJob).then((screen) => port.postMessage(screen));
