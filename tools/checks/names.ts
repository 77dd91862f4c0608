/** Names of all checks, as in their npm scripts: `check:types`. They run in parallel. */
export const checks = ['types', 'lint', 'arrows', 'sizes', 'words', 'terms', 'commits', 'unused', 'docs', 'packages'];
