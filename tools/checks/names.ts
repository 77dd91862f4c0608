/** Every check, as the end of its npm script: `check:types`. They run at the same time. */
export const checks = ['types', 'lint', 'arrows', 'sizes', 'words', 'commits', 'unused', 'docs', 'packages'];
