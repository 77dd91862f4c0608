/** Names of all checks, as in their npm scripts, such as `check:types`. The checks run in parallel. */
export const checks = ['types', 'lint', 'arrows', 'sizes', 'words', 'terms', 'commits', 'unused', 'docs', 'packages'];
