import { Page } from '../../parts/page.tsx';

export function ModulePage() {
  return <Page title="Module">{null}</Page>;
}

export function NewModulePage() {
  return <Page title="New module">{null}</Page>;
}
