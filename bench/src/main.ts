import { launch } from './run/launch.ts';
import { benches } from './run/programs.ts';

await launch('npm run bench -- NAME [--smoke] [options]', benches, process.argv.slice(2), 'list');
