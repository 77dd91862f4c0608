import { launch } from './run/launch.ts';
import { soaks } from './run/programs.ts';

await launch(
  'npm run soak [-- NAME [--smoke] [options]] (without NAME: runs all in sequence)',
  soaks,
  process.argv.slice(2),
  'all',
);
