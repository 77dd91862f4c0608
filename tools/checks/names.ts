/** Every check, as the end of its npm script: `check:types`. They run at the same time. */
export const checks = ['types', 'lint', 'arrows', 'sizes', 'words', 'terms', 'commits', 'unused', 'docs', 'packages'];
