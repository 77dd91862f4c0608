import type { BuildOptions } from 'esbuild';

/** Options that bundle the agent into one module, for tests that run it in its own process or on another machine. */
export const agentBundle = {
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'esm',
  // The CommonJS version resolves its parts at run time, which a bundle does not support.
  alias: { 'jsonc-parser': 'jsonc-parser/lib/esm/main.js' },
  // CommonJS packages in the bundle call `require`.
  banner: { js: "import{createRequire as _cr}from'node:module';const require=_cr(import.meta.url);" },
  logLevel: 'error',
} as const satisfies BuildOptions;
