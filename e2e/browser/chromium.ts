import { type Browser, chromium } from 'playwright-core';
import { browserProgram } from '../requirements.ts';

/** Debian's Chromium, that talks to nobody but who it is sent to. */
export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: browserProgram,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}
