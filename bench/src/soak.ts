import { launch } from './run/launch.ts';
import { soaks } from './run/programs.ts';

await launch(
  'npm run soak [-- NAME [--smoke] [options]]; without a name all run in turn',
  soaks,
  process.argv.slice(2),
  'all',
);
