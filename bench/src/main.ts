import { launch } from './run/launch.ts';
import { benches } from './run/programs.ts';
import { runAll } from './run/run-all.ts';

const [name, ...options] = process.argv.slice(2);
if (name === 'all') await runAll(options);
else
  await launch(
    'npm run bench -- NAME [--smoke] [options], or: npm run bench -- all [--only NAME,…] [--smoke] [--write]',
    benches,
    process.argv.slice(2),
    'list',
  );
