import { Page } from '../../parts/page.tsx';

export function TerminalPage() {
  return <Page title="Terminal">{null}</Page>;
}

export function NewTerminalPage() {
  return <Page title="Terminal">{null}</Page>;
}
