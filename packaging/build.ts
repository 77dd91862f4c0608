// `npm run build`: everything that is released, in dist/.
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describeBuild, executable } from './executable.ts';

const dist = join(import.meta.dirname, '..', 'dist');
mkdirSync(dist, { recursive: true });
copyFileSync(await executable(describeBuild(process.env)), join(dist, 'muster'));
