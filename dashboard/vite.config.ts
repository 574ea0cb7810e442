import tailwind from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** The API to which `npx vite` proxies requests. */
const API = process.env.BERTH_URL ?? 'http://127.0.0.1:3000'

export default defineConfig({
  base: '/dashboard/',
  plugins: [react(), tailwind()],
  // Inline nothing: the page's policy allows neither inline scripts nor `data:` assets.
  build: { assetsInlineLimit: 0, modulePreload: { polyfill: false }, target: 'es2023' },
  server: { proxy: { '/v0': API, '/v3': API, '/readyz': API } },
})
