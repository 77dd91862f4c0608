import { launch } from './run/launch.ts';
import { benches } from './run/programs.ts';

// npm run bench -- connect --agents 2000
await launch('npm run bench -- NAME [--smoke] [options]', benches, process.argv.slice(2), 'list');
