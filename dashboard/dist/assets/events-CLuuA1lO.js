async function e(e,t){let n=e.pipeThrough(new TextDecoderStream).getReader();for(let e=``;;){let{done:r,value:i}=await n.read();if(r)return;let a=(e+i).split(`

`);e=a.pop()??``;for(let e of a){let n=/^event: (.*)$/m.exec(e)?.[1],r=/^data: (.*)$/m.exec(e)?.[1];n!==void 0&&r!==void 0&&t(n,JSON.parse(r))}}}export{e as t};